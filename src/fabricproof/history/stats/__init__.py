"""Pure statistics of few and skewed samples; numbers in, numbers out, no records, no files."""
