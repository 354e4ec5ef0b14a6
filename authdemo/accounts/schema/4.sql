ALTER TABLE accounts ADD COLUMN device_generation INTEGER NOT NULL DEFAULT 1; -- devices of an earlier one are strangers

-- Browsers on which an owner has logged in. What is no longer listed here is still
-- trusted until it expires; only what is revoked is not.
CREATE TABLE devices (
	id         TEXT    PRIMARY KEY, -- tells nobody the cookie
	account    INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	generation INTEGER NOT NULL,    -- the account's device_generation
	added      INTEGER NOT NULL,
	expires    INTEGER NOT NULL,
	revoked    INTEGER NOT NULL DEFAULT 0 CHECK (revoked IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX devices_by_account ON devices (account, generation, revoked);
CREATE INDEX devices_by_expires ON devices (expires);
