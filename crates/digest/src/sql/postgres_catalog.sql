-- Yields the tables, sequences and objects, one JSON array per row:
--   ["table", name, identifier, [[column, identifier], ...]]    of the tables whose rows are hashed
--   ["sequence", name, identifier, table whose column owns it, or null]
--   ["object", kind, name, MD5 of its definition]
-- Names include their schema unless it is `public`. The name and version of an extension stand for its functions and types.
with space as (
    select oid, nspname, nspowner, nspacl, case when nspname = 'public' then '' else nspname || '.' end as prefix
    from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
), relation as (
    select c.*, s.prefix || c.relname as name, format('%I.%I', s.nspname, c.relname) as identifier
    from pg_class c join space s on s.oid = c.relnamespace where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c')
), columns as (
    select a.attrelid,
        json_agg(json_build_array(a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
            a.attgenerated, a.attcollation::regcollation, a.attacl::text, pg_get_expr(d.adbin, d.adrelid)) order by a.attnum)::text as definition,
        json_agg(json_build_array(a.attname, quote_ident(a.attname)) order by a.attnum) as names
    from relation r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    group by a.attrelid
), extension_part as (
    select classid, objid from pg_depend where deptype = 'e'
)
select json_build_array('table', r.name, r.identifier, coalesce(c.names, '[]'))
from relation r left join columns c on c.attrelid = r.oid
where r.relkind = 'r' or (r.relkind = 'm' and r.relispopulated)
union all
select json_build_array('sequence', r.name, r.identifier, (
    select owner.name from pg_depend d join relation owner on owner.oid = d.refobjid
    where d.classid = 'pg_class'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i') limit 1))
from relation r where r.relkind = 'S'
union all
select json_build_array('object', object.kind, object.name, md5(object.definition::text)) from (
    select case r.relkind when 'S' then 'sequence' when 'v' then 'view' when 'c' then 'type' else 'table' end as kind, r.name,
        json_build_array(r.relkind, r.relpersistence, r.relispopulated, pg_get_userbyid(r.relowner), r.relacl::text, r.reloptions::text,
            r.relrowsecurity, r.relforcerowsecurity, r.relreplident, pg_get_partkeydef(r.oid), pg_get_expr(r.relpartbound, r.oid), c.definition,
            case when r.relkind in ('v', 'm') then pg_get_viewdef(r.oid) end,
            (select string_agg(i.inhparent::regclass::text, ', ' order by i.inhseqno) from pg_inherits i where i.inhrelid = r.oid),
            (select json_build_array(q.seqtypid::regtype, q.seqstart, q.seqincrement, q.seqmax, q.seqmin, q.seqcache, q.seqcycle)
                from pg_sequence q where q.seqrelid = r.oid)) as definition
    from relation r left join columns c on c.attrelid = r.oid
    union all
    select 'index', s.prefix || c.relname, json_build_array(pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisclustered)
    from pg_index i join pg_class c on c.oid = i.indexrelid join space s on s.oid = c.relnamespace
    union all
    select 'constraint', coalesce(r.name, t.typname) || '.' || k.conname, json_build_array(pg_get_constraintdef(k.oid), k.convalidated)
    from pg_constraint k join space s on s.oid = k.connamespace left join relation r on r.oid = k.conrelid left join pg_type t on t.oid = k.contypid
    union all
    select 'trigger', r.name || '.' || t.tgname, json_build_array(pg_get_triggerdef(t.oid), t.tgenabled)
    from pg_trigger t join relation r on r.oid = t.tgrelid where not t.tgisinternal
    union all
    select 'rule', r.name || '.' || w.rulename, json_build_array(pg_get_ruledef(w.oid), w.ev_enabled)
    from pg_rewrite w join relation r on r.oid = w.ev_class where w.rulename <> '_RETURN'
    union all
    select 'policy', r.name || '.' || p.polname, json_build_array(p.polcmd, p.polpermissive, p.polroles::regrole[]::text,
        pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
    from pg_policy p join relation r on r.oid = p.polrelid
    union all
    select 'function', s.prefix || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
        json_build_array(case when p.prokind in ('f', 'p') then pg_get_functiondef(p.oid) else pg_get_function_result(p.oid) end, p.proacl::text)
    from pg_proc p join space s on s.oid = p.pronamespace
    where not exists (select from extension_part e where e.classid = 'pg_proc'::regclass and e.objid = p.oid)
    union all
    select 'type', s.prefix || t.typname, json_build_array(t.typtype, format_type(t.typbasetype, t.typtypmod), t.typnotnull, t.typdefault,
        (select string_agg(quote_literal(l.enumlabel), ', ' order by l.enumsortorder) from pg_enum l where l.enumtypid = t.oid))
    from pg_type t join space s on s.oid = t.typnamespace
    where t.typtype in ('e', 'd', 'r') and not exists (select from extension_part e where e.classid = 'pg_type'::regclass and e.objid = t.oid)
    union all
    select 'extension', extname, json_build_array(extversion) from pg_extension
    union all
    select 'schema', nspname, json_build_array(pg_get_userbyid(nspowner), nspacl::text) from space
    union all
    select 'role', rolname, json_build_array(rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls, rolconnlimit, rolvaliduntil)
    from pg_roles where rolname !~ '^pg_'
    union all
    -- Only the owner of a large object can read it, so the list of their numbers stands for their content.
    select 'large objects', 'all', json_agg(oid order by oid) from pg_largeobject_metadata having count(*) > 0
) object;
