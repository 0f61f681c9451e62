create user everything@'%';
grant all on *.* to everything@'%' with grant option;
create database d;
create table d.t (a int primary key, b text) engine = InnoDB;
insert into d.t values (1, 'x'), (2, 'y');
create sequence d.s;
