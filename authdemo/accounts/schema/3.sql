CREATE TABLE second_factors (
	account   INTEGER PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
	app_key   BLOB    NOT NULL,          -- sealed by the service: the database alone cannot read it
	made      INTEGER NOT NULL,
	since     INTEGER,                   -- NULL until a first code has confirmed it
	last_step INTEGER NOT NULL DEFAULT 0 -- the time step of the newest code that was used
) STRICT;

CREATE TABLE recovery_codes (
	account INTEGER NOT NULL REFERENCES second_factors (account) ON DELETE CASCADE,
	hash    BLOB    NOT NULL, -- SHA-256
	PRIMARY KEY (account, hash)
) STRICT, WITHOUT ROWID;
