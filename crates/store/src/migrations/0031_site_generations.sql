-- Generations are numbered by site, and standbys belong to the site: both are filed under the id of the site's slot 1. Those of
-- further slots were numbered and filed by slot, so their numbers may be those of others. They are made anew.
UPDATE instances SET serving = NULL, made = NULL WHERE id NOT LIKE '%/1';
DELETE FROM standbys WHERE instance NOT LIKE '%/1';
DELETE FROM elsewhere WHERE instance NOT LIKE '%/1';
