INSERT INTO profile (user_id, daily_credits, sub_credits) VALUES (1, 10, 2);
INSERT INTO user_billing (user_id, balance_cents, plan_cents) VALUES (1, 310, 1499);
-- Forty customers on the day of their renewal, made up: spread so that half of them have less than
-- 310 cents left and a tenth more than 890, which is what the post measured.
INSERT INTO user_billing (user_id, balance_cents, plan_cents)
SELECT user_id, cents, 1499
FROM (VALUES
        (101, 49), (102, 72), (103, 88), (104, 102), (105, 114), (106, 126),
        (107, 138), (108, 149), (109, 161), (110, 172), (111, 184), (112, 195),
        (113, 207), (114, 220), (115, 232), (116, 245), (117, 258), (118, 272),
        (119, 287), (120, 302), (121, 318), (122, 335), (123, 353), (124, 372),
        (125, 392), (126, 414), (127, 438), (128, 464), (129, 492), (130, 523),
        (131, 558), (132, 598), (133, 643), (134, 697), (135, 761), (136, 884),
        (137, 946), (138, 1096), (139, 1342), (140, 1499)) AS made (user_id, cents);
INSERT INTO ledger (user_id, cents, reason)
SELECT user_id, balance_cents, 'opening' FROM user_billing;
