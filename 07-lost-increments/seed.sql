INSERT INTO api_key (id, secret) VALUES (1, 'sk-ana'), (2, 'sk-bruno');
INSERT INTO user_billing (user_id, balance_cents) VALUES (1, 100), (2, 100);
INSERT INTO ledger (user_id, cents, reason) VALUES (1, 100, 'deposit'), (2, 100, 'deposit');
