"""The tables of a ledger in SQL, version by version; run by `sql_schema.migrate`."""
