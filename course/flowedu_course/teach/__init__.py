"""Tools for instructors: trees to hand out, grading, and checks of both."""
