-- Yields ["key", table, column] for each column of a primary key, in the order of the key.
select json_build_array('key', case when s.nspname = 'public' then '' else s.nspname || '.' end || c.relname, a.attname)
from pg_index i
join pg_class c on c.oid = i.indrelid
join pg_namespace s on s.oid = c.relnamespace
cross join unnest(i.indkey::int2[]) with ordinality k(number, place)
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
where i.indisprimary and k.place <= i.indnkeyatts order by c.oid, k.place;
