CREATE TABLE accounts (
	id            INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: old sessions name it
	email         TEXT    NOT NULL UNIQUE,           -- canonical
	password_hash TEXT    NOT NULL,                  -- PHC string
	generation    INTEGER NOT NULL DEFAULT 1,        -- sessions of an earlier one are over
	created       INTEGER NOT NULL
) STRICT;

-- An account exists once its address is confirmed; until then there is only a token.
CREATE TABLE tokens (
	hash    BLOB    PRIMARY KEY, -- SHA-256
	purpose TEXT    NOT NULL CHECK (purpose IN ('confirm', 'reset')),
	email   TEXT    NOT NULL,
	expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_email   ON tokens (email, purpose);
CREATE INDEX tokens_by_expires ON tokens (expires);

CREATE TABLE api_keys (
	id      INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: limits count by it
	hash    BLOB    NOT NULL UNIQUE,           -- SHA-256
	account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	created INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account);

CREATE TABLE sessions (
	token   TEXT    PRIMARY KEY, -- hashed by the session manager
	data    BLOB    NOT NULL,
	expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expires ON sessions (expires);
