INSERT INTO squads (name) VALUES ('Backend'), ('Datos'), ('Frontend');

INSERT INTO squad_members (squad_id, member_id)
SELECT 1 + members.id % 3, members.id FROM members WHERE NOT is_bot;
