"""Tools of the course: lessons, exercises, the laws that check them, and grading."""
