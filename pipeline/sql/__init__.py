"""SQL over the tables: they are registered where they lie, and views answer what is usually asked."""
