-- A password that another person may have set: right or wrong, it signs nobody in until a new one is chosen.

alter table service.account add column must_change_password boolean not null default false;
