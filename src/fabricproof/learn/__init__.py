"""Baselines learnt from history: frozen, shown, compared, proposed anew."""
