package env

import (
	"fmt"
)

// rows of a table that have a value in a column.
func rows(s State, a Args) (table Record, hit, rest []any, err error) {
	table, err = s.get("tables", a.Text("table"))
	if err != nil {
		return nil, nil, nil, err
	}
	all, _ := table["rows"].([]any)
	known := false
	for _, row := range all {
		m, _ := row.(map[string]any)
		v, ok := m[a.Text("column")]
		known = known || ok
		if ok && fmt.Sprint(v) == a.Text("equals") {
			hit = append(hit, row)
		} else {
			rest = append(rest, row)
		}
	}
	if !known {
		return nil, nil, nil, fmt.Errorf("%s has no column %q", a.Text("table"), a.Text("column"))
	}
	return table, hit, rest, nil
}

func databaseTools() []*Tool {
	table := text("table", "name of the table")
	column := text("column", "name of the column that is compared")
	equals := text("equals", "value that the rows have there")
	migration := text("migration", "name of the migration")
	index := text("index", "name of the index")
	session := text("session", "id of the session")
	user := text("user", "name of the database user")
	return []*Tool{
		list("list_tables", "List all tables with their rows.", "tables"),
		list("list_migrations", "List all migrations.", "migrations"),
		list("list_sessions", "List all sessions.", "sessions"),
		list("list_users", "List all database users.", "users"),
		tool("query_rows", "Show rows of a table.", "tables", false, func(s State, a Args) (any, error) {
			_, hit, _, err := rows(s, a)
			if err != nil {
				return nil, err
			}
			return map[string]any{"rows": append(json0(), hit...)}, nil
		}, table, column, equals),
		evidence("count_rows", "Count the rows of a table.", "tables", table, "counts"),
		copying("create_snapshot", "Take a snapshot of a table.", "tables", table, "snapshots"),
		undo("delete_snapshot", "Delete the snapshot of a table.", "tables", table, "snapshots"),
		tool("delete_rows", "Delete rows of a table.", "tables", true, func(s State, a Args) (any, error) {
			t, hit, rest, err := rows(s, a)
			if err != nil {
				return nil, err
			}
			t["rows"] = append(json0(), rest...)
			return map[string]any{"deleted": len(hit)}, nil
		}, table, column, equals),
		tool("update_rows", "Set a column in rows of a table.", "tables", true, func(s State, a Args) (any, error) {
			_, hit, _, err := rows(s, a)
			if err != nil {
				return nil, err
			}
			for _, row := range hit {
				row.(map[string]any)[a.Text("set")] = a.Text("value")
			}
			return map[string]any{"updated": len(hit)}, nil
		}, table, column, equals, text("set", "column to set"), text("value", "new value")),
		tool("insert_row", "Insert a row with one value into a table.", "tables", true, func(s State, a Args) (any, error) {
			t, err := s.get("tables", a.Text("table"))
			if err != nil {
				return nil, err
			}
			all, _ := t["rows"].([]any)
			t["rows"] = append(all, map[string]any{a.Text("column"): a.Text("value")})
			return map[string]any{"rows": len(all) + 1}, nil
		}, table, text("column", "column"), text("value", "value")),
		mark("truncate_table", "Delete all rows of a table.", "tables", table, Record{"rows": json0()}),
		remove("drop_table", "Drop a table.", "tables", table),
		evidence("mask_columns", "Mask the personal columns of a table for export.", "tables", table, "masks"),
		set("export_table", "Export a table to a destination.", "tables", table, text("exported_to", "destination")),
		evidence("dry_run_migration", "Run a migration without keeping its effects.", "migrations", migration, "dryruns"),
		mark("run_migration", "Run a migration.", "migrations", migration, Record{"status": "applied"}),
		mark("revert_migration", "Revert a migration.", "migrations", migration, Record{"status": "reverted"}),
		evidence("inspect_session", "Show what a session is doing.", "sessions", session, "inspections"),
		remove("kill_session", "Kill a session.", "sessions", session),
		evidence("explain_index", "Show which queries use an index.", "indexes", index, "indexreports"),
		remove("drop_index", "Drop an index.", "indexes", index),
		mark("rebuild_index", "Rebuild an index. Its table is locked meanwhile.", "indexes", index, Record{"state": "rebuilt"}),
		evidence("review_access", "Have the access of a database user reviewed by its owner.", "users", user, "accessreviews"),
		set("grant_access", "Grant a user access to all tables.", "users", user, choice("level", "level of access", "read", "write", "admin")),
		remove("drop_user", "Drop a database user.", "users", user),
	}
}
