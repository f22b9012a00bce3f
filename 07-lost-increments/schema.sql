-- Keys of an API, and how often each was used.
CREATE TABLE api_key (
    id                 INT PRIMARY KEY,
    secret             TEXT NOT NULL UNIQUE,
    use_count          INT NOT NULL DEFAULT 0,
    last_used_at       TIMESTAMPTZ,
    revoked_at         TIMESTAMPTZ,
    count_when_revoked INT,
    version            INT NOT NULL DEFAULT 1
);
-- What a user can spend. Nothing here says that it may not be negative: that is the lesson.
CREATE TABLE user_billing (
    user_id       INT PRIMARY KEY,
    balance_cents INT NOT NULL
);
-- Money set aside for a call whose price is known when it ends. It is still the user's.
CREATE TABLE hold (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    INT NOT NULL REFERENCES user_billing,
    cents      INT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
-- Every cent that came or went: balance + holds = sum of the ledger, at any moment.
CREATE TABLE ledger (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id INT NOT NULL REFERENCES user_billing,
    cents   INT NOT NULL,
    reason  TEXT NOT NULL
);
