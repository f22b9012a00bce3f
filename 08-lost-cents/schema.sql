-- (a) A search that was charged: one row is one unit of quota, with what the provider took for it.
CREATE TABLE search (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id      INT NOT NULL,
    query        TEXT NOT NULL,
    cost_cents   INT NOT NULL,
    status       TEXT NOT NULL DEFAULT 'charged',
    duplicate_of BIGINT REFERENCES search,
    at           TIMESTAMPTZ NOT NULL
);
-- What was spent on searches that are not charged. The reference is for the audit only: it charges
-- nobody, and the spend outlives the search that it refers to.
CREATE TABLE unbilled_search_spend (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    search_id  BIGINT REFERENCES search ON DELETE SET NULL,
    cost_cents INT NOT NULL,
    at         TIMESTAMPTZ NOT NULL
);
-- The provider's own books. They would be on the provider's server.
CREATE TABLE provider_invoice (
    id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cents INT NOT NULL
);
-- (b) Two pockets of credits, and the one definition of what they come to.
CREATE TABLE profile (
    user_id       INT PRIMARY KEY,
    daily_credits INT NOT NULL CHECK (daily_credits >= 0),
    sub_credits   INT NOT NULL CHECK (sub_credits >= 0),
    total_credits INT NOT NULL GENERATED ALWAYS AS (daily_credits + sub_credits) STORED
);
-- (c) A balance, renewed every month with the plan's cents; the ledger explains every cent of it.
CREATE TABLE user_billing (
    user_id       INT PRIMARY KEY,
    balance_cents INT NOT NULL,
    plan_cents    INT NOT NULL
);
CREATE TABLE ledger (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id INT NOT NULL REFERENCES user_billing,
    cents   INT NOT NULL,
    reason  TEXT NOT NULL
);
-- Events of the payment provider that were applied. It may deliver one more than once.
CREATE TABLE processed_event (
    event_id TEXT PRIMARY KEY
);
