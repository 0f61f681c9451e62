"""Writes the batches of the environment's own projects from the world, in the layout of TurkingBench: input columns, then
`Answer.` columns."""
