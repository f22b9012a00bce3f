-- Tables for small programs that meet: the samples with which the engine itself is tested.
CREATE TABLE claims (name text PRIMARY KEY, owner text NOT NULL);
CREATE TABLE wallets (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE spends (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet_id int NOT NULL REFERENCES wallets ON DELETE CASCADE,
    who text NOT NULL
);
CREATE TABLE receipts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet_id int NOT NULL REFERENCES wallets,
    who text NOT NULL
);
CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, who text NOT NULL);
CREATE TABLE seen (who text PRIMARY KEY, what text NOT NULL);
INSERT INTO wallets VALUES (1, 100), (2, 100), (3, 100);
