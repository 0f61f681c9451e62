SELECT E'a'
'\' || ' , pg_sleep(2)::text --'