"""The report on a folder of benchmark records: tables in four forms, and one page with everything."""
