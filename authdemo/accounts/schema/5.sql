-- When an owner was last told by mail of something at the account, by what it was.
CREATE TABLE notices (
	account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	kind    TEXT    NOT NULL,
	sent    INTEGER NOT NULL,
	PRIMARY KEY (account, kind)
) STRICT, WITHOUT ROWID;
