"""How often the verdict is wrong: faults, a model that leaves the files of jobs, and figures.

Everything behind those files is the product itself.  ``python -m proof`` in a checkout.
"""
