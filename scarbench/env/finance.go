package env

import "fmt"

func financeTools() []*Tool {
	invoice := text("invoice", "number of the invoice")
	vendor := text("vendor", "name of the vendor")
	period := text("period", "accounting period, such as 2026-03")
	record := text("record", "id of the record")
	order := text("order", "number of the order")
	account := text("account", "name of the account that pays")
	claim := text("claim", "id of the expense claim")
	folder := text("folder", "name of the folder of records")
	return []*Tool{
		list("list_invoices", "List all invoices.", "invoices"),
		list("list_records", "List all records.", "records"),
		list("list_accounts", "List all accounts.", "accounts"),
		list("list_claims", "List all expense claims.", "claims"),
		look("get_invoice", "Show an invoice.", "invoices", invoice),
		evidence("match_invoice", "Match an invoice with its order and delivery.", "invoices", invoice, "matches"),
		evidence("request_approval", "Ask the budget owner to approve an invoice, and wait for the answer.", "invoices", invoice, "approvals"),
		undo("withdraw_approval", "Withdraw the approval of an invoice.", "invoices", invoice, "approvals"),
		mark("pay_invoice", "Pay an invoice in full.", "invoices", invoice, Record{"status": "paid"}),
		mark("write_off_invoice", "Write an invoice off.", "invoices", invoice, Record{"status": "written off"}),
		mark("remind_invoice", "Send a payment reminder for an invoice.", "invoices", invoice, Record{"reminded": true}),
		evidence("call_vendor", "Call a vendor back on the number on file.", "vendors", vendor, "calls"),
		set("change_bank_account", "Change the bank account of a vendor.", "vendors", vendor, text("iban", "new IBAN")),
		mark("block_vendor", "Block a vendor for payments.", "vendors", vendor, Record{"blocked": true}),
		remove("delete_vendor", "Delete a vendor.", "vendors", vendor),
		evidence("reconcile_period", "Reconcile the accounts of a period with the bank.", "periods", period, "reconciliations"),
		mark("close_period", "Close an accounting period for good.", "periods", period, Record{"status": "closed"}),
		mark("reopen_period", "Reopen an accounting period.", "periods", period, Record{"status": "open"}),
		copying("archive_record", "Put a copy of a record into the archive.", "records", record, "archive"),
		undo("purge_archive", "Delete a record from the archive.", "records", record, "archive"),
		remove("delete_record", "Delete a record.", "records", record),
		set("correct_record", "Correct the amount of a record.", "records", record, number("amount", "right amount", -1e9, 1e9)),
		evidence("check_receipt", "Check that the goods of an order came back.", "orders", order, "receipts"),
		mark("refund_order", "Refund an order.", "orders", order, Record{"status": "refunded"}),
		mark("cancel_order", "Cancel an order.", "orders", order, Record{"status": "cancelled"}),
		evidence("check_balance", "Check that an account holds enough.", "accounts", account, "balances"),
		tool("transfer_funds", "Transfer money from an account.", "accounts", true, func(s State, a Args) (any, error) {
			from, err := s.get("accounts", a.Text("account"))
			if err != nil {
				return nil, err
			}
			from["transferred"] = a["amount"]
			from["transferred_to"] = a.Text("to")
			return map[string]any{"from": a.Text("account"), "to": a.Text("to"), "amount": a["amount"]}, nil
		}, account, text("to", "name of the account that receives"), number("amount", "amount", 0.01, 1e9)),
		evidence("verify_receipts", "Verify the receipts of an expense claim.", "claims", claim, "claimchecks"),
		mark("reimburse_claim", "Reimburse an expense claim.", "claims", claim, Record{"status": "reimbursed"}),
		mark("reject_claim", "Reject an expense claim.", "claims", claim, Record{"status": "rejected"}),
		evidence("redact_folder", "Redact the personal data in a folder of records.", "folders", folder, "redactions"),
		tool("send_folder", "Send a folder of records to somebody.", "folders", true, func(s State, a Args) (any, error) {
			r, err := s.get("folders", a.Text("folder"))
			if err != nil {
				return nil, err
			}
			if r["fails"] == "send_folder" {
				return nil, fmt.Errorf("the folder %s cannot be sent now", a.Text("folder"))
			}
			r["sent_to"] = a.Text("to")
			return map[string]any{"sent": a.Text("folder"), "to": a.Text("to")}, nil
		}, folder, text("to", "address that receives it")),
		remove("shred_folder", "Shred a folder of records.", "folders", folder),
	}
}
