-- PL/pgSQL keeps the plan of the first change, which is often one row: a nested loop over both transition tables. A later change of many
-- rows on the same connection then took quadratic time. A hash join suits any number.

alter function service.tell_rows() set enable_nestloop = off;
alter function service.tell_sessions() set enable_nestloop = off;
