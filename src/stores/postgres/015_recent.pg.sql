-- One process writes for all where a leader is: nobody else has to know what a commit changed.
DROP TABLE recent;
