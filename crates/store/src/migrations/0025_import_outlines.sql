-- What reconciliation asks of each import once a minute, so that it need not read manifests.
ALTER TABLE imports ADD COLUMN images TEXT NOT NULL DEFAULT '[]';    -- JSON: ids
ALTER TABLE imports ADD COLUMN volumes TEXT NOT NULL DEFAULT '[]';   -- JSON: names of archives
UPDATE imports SET
    images = (SELECT json_group_array(json_extract(service.value, '$.image'))
              FROM json_each(imports.manifest, '$.services') AS service),
    volumes = (SELECT json_group_array(file.value)
               FROM json_each(imports.manifest, '$.volumes') AS paths, json_each(paths.value) AS file);
