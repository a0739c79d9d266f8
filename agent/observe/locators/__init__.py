"""What rack locators outside of the process tell: a file, a command, an entry point (KIP-36's RackLocator).

They are asked in every look, side by side with the brokers. Their answers are foreign: a time limit and a size limit
hold for each, all of an answer is taken or none of it, no sentence quotes from it, and the last good one stands in for
one that failed, with its age.
"""
