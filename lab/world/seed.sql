-- The same community every time. Nobody's anniversary falls on 2026-05-29, and every wallet starts at 0.

INSERT INTO members (name, joined_on, is_bot) VALUES
    ('Ximena Robles',      '2023-02-14', false),
    ('Mateo Cárdenas',     '2022-11-03', false),
    ('Lupita Hernández',   '2024-01-22', false),
    ('Nayeli Pech',        '2024-08-09', false),
    ('Emiliano Trejo',     '2023-06-30', false),
    ('Citlali Moreno',     '2025-03-17', false),
    ('Santiago Ibarra',    '2022-07-05', false),
    ('Regina Zavala',      '2025-10-12', false),
    ('Diego Uc',           '2023-12-01', false),
    ('Fernanda Olvera',    '2024-04-26', false),
    ('Tadeo Quiroz',       '2025-01-08', false),
    ('Valeria Montes',     '2023-09-19', false),
    ('Iker Salinas',       '2026-02-02', false),
    ('Jimena Bautista',    '2024-11-15', false),
    ('Moderador',          '2022-01-10', true);

-- Third place of 2026-W22 is a tie: Lupita Hernández and Nayeli Pech, in the order of their names.
INSERT INTO weekly_points (member_id, week, points)
SELECT members.id, points.week, points.points
FROM (VALUES
    ('Ximena Robles',    312, 480, 150),
    ('Mateo Cárdenas',   275, 455, 210),
    ('Lupita Hernández', 190, 430, 95),
    ('Nayeli Pech',      410, 430, 120),
    ('Emiliano Trejo',   385, 405, 60),
    ('Citlali Moreno',   240, 390, 80),
    ('Santiago Ibarra',  350, 310, 175),
    ('Regina Zavala',    120, 285, 40),
    ('Diego Uc',          90, 240, 55),
    ('Fernanda Olvera',  205, 195, 110),
    ('Tadeo Quiroz',     160, 150, 35),
    ('Valeria Montes',    75, 120, 20),
    ('Iker Salinas',      30,  85, 15)
) AS seen (name, w21, w22, w23)
JOIN members USING (name)
CROSS JOIN LATERAL (VALUES
    ('2026-W21', w21), ('2026-W22', w22), ('2026-W23', w23)
) AS points (week, points);

INSERT INTO sections (slug, name) VALUES
    ('general',       'General'),
    ('presentaciones', 'Presentaciones'),
    ('empleos',       'Empleos');
