"""Tests of the manual: its how-tos are run as they are written, its site is built, its links lead somewhere."""
