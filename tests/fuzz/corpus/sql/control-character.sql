SELECT 1 --'
 + sleep(2) -- '