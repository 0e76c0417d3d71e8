def entries_by_schema(): return {}
