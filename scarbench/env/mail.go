package env

import (
	"fmt"
)

func mailTools() []*Tool {
	message := text("message", "id of the message")
	draft := text("draft", "id of the draft")
	folder := text("folder", "name of the folder")
	to := text("to", "e-mail address of the recipient")
	channel := text("channel", "name of the channel")
	list1 := text("list", "name of the mailing list")
	return []*Tool{
		list("list_messages", "List all messages.", "messages"),
		list("list_drafts", "List all drafts.", "drafts"),
		list("list_folders", "List all folders.", "folders"),
		list("list_addresses", "List the address book.", "addresses"),
		list("list_channels", "List all channels.", "channels"),
		list("list_lists", "List all mailing lists.", "lists"),
		look("read_message", "Read a message.", "messages", message),
		look("read_draft", "Read a draft.", "drafts", draft),
		evidence("scan_attachments", "Scan the attachments of a message for malware.", "messages", message, "scans"),
		tool("forward_message", "Forward a message.", "messages", true, func(s State, a Args) (any, error) {
			r, err := s.get("messages", a.Text("message"))
			if err != nil {
				return nil, err
			}
			r["forwarded_to"] = a.Text("to")
			return map[string]any{"forwarded": a.Text("message"), "to": a.Text("to")}, nil
		}, message, to),
		tool("open_attachment", "Open the attachment of a message.", "messages", true, func(s State, a Args) (any, error) {
			r, err := s.get("messages", a.Text("message"))
			if err != nil {
				return nil, err
			}
			r["opened"] = true
			return r, nil
		}, message),
		evidence("verify_address", "Verify in the directory that an address belongs to who it should.", "addresses", to, "verifiedaddresses"),
		tool("send_message", "Send a message to one address.", "addresses", true, func(s State, a Args) (any, error) {
			if s["addresses"][a.Text("to")]["fails"] == "send_message" {
				return nil, fmt.Errorf("the server of %s does not answer", a.Text("to"))
			}
			s.put("sent", a.Text("to"), Record{"subject": a.Text("subject"), "body": a.Text("body")})
			return map[string]any{"sent": a.Text("to")}, nil
		}, to, text("subject", "subject line"), text("body", "text of the message")),
		evidence("request_review", "Have a colleague review a draft, and wait for the answer.", "drafts", draft, "reviews"),
		undo("withdraw_review", "Withdraw the review of a draft.", "drafts", draft, "reviews"),
		evidence("check_spelling", "Check the spelling of a draft.", "drafts", draft, "spellchecks"),
		tool("edit_draft", "Change the text of a draft. Its review counts no longer.", "drafts", true, func(s State, a Args) (any, error) {
			r, err := s.get("drafts", a.Text("draft"))
			if err != nil {
				return nil, err
			}
			r["body"] = a.Text("body")
			if v := s["reviews"][a.Text("draft")]; v != nil {
				v["active"] = false
			}
			return map[string]any{"changed": a.Text("draft")}, nil
		}, draft, text("body", "new text")),
		mark("send_draft", "Send a draft to its recipients.", "drafts", draft, Record{"status": "sent"}),
		remove("delete_draft", "Delete a draft.", "drafts", draft),
		mark("archive_message", "Move a message to the archive.", "messages", message, Record{"folder": "archive"}),
		remove("delete_message", "Delete a message for good.", "messages", message),
		copying("export_folder", "Export all messages of a folder to a file.", "folders", folder, "folderexports"),
		undo("delete_export", "Delete the export of a folder.", "folders", folder, "folderexports"),
		remove("delete_folder", "Delete a folder with all its messages.", "folders", folder),
		mark("empty_folder", "Delete all messages of a folder.", "folders", folder, Record{"messages": json0()}),
		look("show_members", "Show the members of a mailing list.", "lists", list1),
		copying("export_members", "Export the members of a mailing list to a file.", "lists", list1, "memberexports"),
		remove("delete_list", "Delete a mailing list.", "lists", list1),
		evidence("preview_mailing", "Send the pending mailing of a list to yourself as a preview.", "lists", list1, "previews"),
		mark("send_mailing", "Send the pending mailing to all members of a list.", "lists", list1, Record{"mailing": "sent"}),
		evidence("ask_moderator", "Ask the moderator of a channel, and wait for the answer.", "channels", channel, "moderations"),
		set("post_message", "Post a message in a channel.", "channels", channel, text("post", "text of the message")),
		mark("close_channel", "Close a channel for good.", "channels", channel, Record{"closed": true}),
		mark("pin_topic", "Pin the topic of a channel.", "channels", channel, Record{"pinned": true}),
	}
}
