"""External rack locators (KIP-36's RackLocator): a file, a command, or an entry point of a package.

Each is asked at every look, side by side with the brokers, within a time and a size limit. An answer is taken whole or
not at all, no sentence quotes from it, and the last good one replaces a failed one, with its age.
"""
