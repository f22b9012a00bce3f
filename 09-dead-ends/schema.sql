-- Who leads, until when, and in which term; the term is the fencing token.
CREATE TABLE leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    term       BIGINT NOT NULL
);

-- As on stage 03, and under which leader the slot was claimed.
CREATE TABLE worker_runs (
    name   TEXT NOT NULL,
    key    TEXT NOT NULL,
    term   BIGINT NOT NULL,
    ran_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (name, key)
);
