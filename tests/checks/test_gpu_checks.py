"""Checks with buffers on GPUs as ReFrame plans them: with GPUs, with none, with no program."""

from __future__ import annotations

from pathlib import Path

from checks_as_reframe_sees_them import SITES, dry_run

from fabricproof.site import load_site


def test_a_site_with_gpus_plans_what_its_stacks_can_and_says_of_the_rest_why_not(
    stacks: Path,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "gpus"
    folder.mkdir()
    line = 'gpus = { kind = "cuda", per_node = 4, pcie = "5.0x16", direct = true }'
    for each in (SITES / "infiniband-ndr").glob("*.toml"):
        text = each.read_text().replace('fabrics = ["ndr"]\n', f'fabrics = ["ndr"]\n{line}\n')
        (folder / each.name).write_text(text)
    cases = dry_run(load_site(str(folder)), tmp_path, "-t", "gpu")
    found = {(each["name"].split(" ")[0], each["environ"]): each for each in cases}
    checks = {"GpuBandwidth", "GpuBothWays", "GpuLatency", "ImbGpuPingPong"}
    for check in checks:
        mine = found[check, "openmpi-cuda"]
        assert mine["result"] == "pass"
        script = (Path(mine["stagedir"]) / "legs.sh").read_text()
        assert 'ask.sh" gpus cuda' in script
        assert "UCX_TLS=rc,ud,self,cuda" in script
        other = found[check, "mvapich"]
        assert other["result"] == "skip"
        assert "takes no buffers on GPUs" in other["skip_reason"]
    for check in ("NcclAllReduce", "NcclSendRecv"):
        mine = found[check, "openmpi-cuda"]
        assert mine["result"] == "skip"
        assert "without nccl-tests" in mine["skip_reason"]
    bandwidth = Path(found["GpuBandwidth", "openmpi-cuda"]["stagedir"]) / "legs.sh"
    assert bandwidth.read_text().count(" -d cuda H D") == 4


def test_a_site_without_gpus_skips_each_once_and_submits_nothing(
    stacks: Path,
    tmp_path: Path,
) -> None:
    cases = dry_run(load_site(str(SITES / "vcluster")), tmp_path, "-t", "gpu")
    assert len(cases) == 6
    for case in cases:
        assert case["result"] == "skip"
        assert case["skip_reason"].startswith("partition compute has no GPUs")
