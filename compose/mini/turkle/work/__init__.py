"""Writes the batches of our projects from the world, in the layout of TurkingBench: input columns, then `Answer.` columns."""
