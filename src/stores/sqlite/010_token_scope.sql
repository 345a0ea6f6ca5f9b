-- What a token is bound to: users, projects, the task of a run. NULL: to nothing.
ALTER TABLE token ADD COLUMN scope TEXT;
PRAGMA user_version = 10;
