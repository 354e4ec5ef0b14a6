package accounts

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
)

// schema/N.sql leads from version N-1 to N. Files that were released are never
// changed; a new version is a new file.
//
//go:embed schema/*.sql
var schema embed.FS

const schemaVersion = 5

// migrate brings the database to schemaVersion, in one transaction: of two
// processes that start together, the second finds the work done.
func migrate(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > schemaVersion {
		return fmt.Errorf("the schema has version %d, and this program knows only %d", version, schemaVersion)
	}
	for v := version + 1; v <= schemaVersion; v++ {
		script, err := schema.ReadFile(fmt.Sprintf("schema/%d.sql", v))
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(script)); err != nil {
			return fmt.Errorf("schema version %d: %w", v, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}
