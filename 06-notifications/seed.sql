INSERT INTO users (id, name) VALUES
    (1, 'Ana Martínez'), (2, 'Bruno Salas'), (3, 'Carmen Ruiz'), (4, 'Diego Luna');
INSERT INTO products (id, name, stock) VALUES (1, 'Taza de barro', 1000), (2, 'Libreta', 1000);
INSERT INTO relay_cursor (last_id) VALUES (0);
