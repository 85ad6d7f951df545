"""What a run would cost, said before anything is submitted, and held against what runs took.

ReFrame itself is asked in a dry run, so that the checks' own choices are what is counted.
"""
