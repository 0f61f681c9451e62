-- These settings determine the text of a value or of a definition.
-- With row security off, a policy that would hide rows causes an error.
begin isolation level repeatable read read only;
set local search_path = pg_catalog;
set local timezone = 'UTC';
set local datestyle = 'ISO, YMD';
set local intervalstyle = 'postgres';
set local extra_float_digits = 1;
set local bytea_output = 'hex';
set local lc_monetary = 'C';
set local xmlbinary = 'base64';
set local quote_all_identifiers = off;
set local row_security = off;
