-- The date of the data; nothing is ever updated from outside.
DELETE FROM import_status;
INSERT INTO import_status (lastimportdate, indexed) VALUES ('2023-06-01 00:00:00+00', true);
