-- What is behind the beginning of a long body: src/core/tasks/body.ts. Bodies that are here already
-- stay whole in the rows of their tasks.
CREATE TABLE task_text (
  id text COLLATE "C" PRIMARY KEY,
  rest text NOT NULL
);
ALTER TABLE task ADD COLUMN body_apart bigint NOT NULL DEFAULT 0;
