-- A shop: who buys, what there is, what was bought.
CREATE TABLE users (
    id   INT PRIMARY KEY,
    name TEXT NOT NULL
);
CREATE TABLE products (
    id    INT PRIMARY KEY,
    name  TEXT NOT NULL,
    stock INT NOT NULL CHECK (stock >= 0)
);
-- order_key comes from the front end, which sends the same one again when it retries. An account may
-- be closed while its purchase is under way: that is found out at COMMIT, and COMMIT fails.
CREATE TABLE purchases (
    order_key  TEXT PRIMARY KEY,
    user_id    INT NOT NULL REFERENCES users DEFERRABLE INITIALLY DEFERRED,
    product_id INT NOT NULL REFERENCES products,
    bought_at  TIMESTAMPTZ NOT NULL
);
-- What has to be told. A message is pending until it is sent or set aside; due_at is when a relay
-- may take it (next).
CREATE TABLE outbox (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_key    TEXT NOT NULL UNIQUE REFERENCES purchases,
    user_id      INT NOT NULL,
    body         TEXT NOT NULL,
    attempts     INT NOT NULL DEFAULT 0,
    due_at       TIMESTAMPTZ NOT NULL,
    sent_at      TIMESTAMPTZ,
    set_aside_at TIMESTAMPTZ
);
CREATE INDEX outbox_pending ON outbox (user_id, id) WHERE sent_at IS NULL AND set_aside_at IS NULL;
CREATE INDEX outbox_due ON outbox (due_at, id) WHERE sent_at IS NULL AND set_aside_at IS NULL;
-- How far cursor_relay.py has read.
CREATE TABLE relay_cursor (
    last_id BIGINT NOT NULL
);
-- The receiver's own rows: what it has shown to the user. They would be in another database.
CREATE TABLE shown (
    order_key TEXT PRIMARY KEY,
    body      TEXT NOT NULL
);
