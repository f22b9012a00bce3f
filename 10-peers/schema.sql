-- A row is a slot that was claimed; the key is the period that was due.
CREATE TABLE worker_runs (
    name   TEXT NOT NULL,
    key    TEXT NOT NULL,
    ran_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (name, key)
);
