"""The ReFrame runs that the tests of this folder share."""

from __future__ import annotations

import pytest
from reframe_sessions import HouseRun, StockRun, run_house, run_queue, run_stock


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> HouseRun:
    return run_house(tmp_path_factory.mktemp("house"), ["-t", "trap"], column="one")


@pytest.fixture(scope="session")
def house_again(house: HouseRun) -> HouseRun:
    """A second run in the same place, with ReFrame's own retries."""
    return run_house(house.project, ["-t", "retry", "--max-retries=1"], column="two")


@pytest.fixture(scope="session")
def queue(tmp_path_factory: pytest.TempPathFactory) -> HouseRun:
    """The house on a Slurm without accounting, ReFrame's backend ``squeue``."""
    return run_queue(tmp_path_factory.mktemp("queue"))


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> StockRun:
    return run_stock(tmp_path_factory.mktemp("stock"), "--max-retries=1")


@pytest.fixture(scope="session")
def stock_again(stock: StockRun) -> StockRun:
    return run_stock(stock.folder, "-n", "Columns", TRAPS_COLUMNS="one,two")
