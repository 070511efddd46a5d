"""A run that never ran over real files, and a client that speaks to its server as anybody may."""

import http.client
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from PIL import Image

from dcdc.config import RunConfig, to_mapping, with_values
from dcdc.metrics import partition_health
from dcdc.run_folder import RunFolder
from dcdc.viewer import ViewServer

HOSTILE = "<img src=x onerror=window.ran=1>\"'&\u202e${1}.jpg"


def write_run(
    path: Path,
    names: Sequence[str],
    clusters: Sequence[int],
    *,
    source: object = "",
    features: np.ndarray | None = None,
    confidence: Sequence[float] | None = None,
    n_clusters: int = 3,
    sample_rows: Sequence[int] | None = None,
) -> RunFolder:
    """`features` are of the first images, n x D; in the sample are those at `sample_rows`."""
    folder = RunFolder.create(path)
    values = {"n_clusters": n_clusters, "data.source": str(source)}
    folder.write_config(to_mapping(with_values(RunConfig(), values)))
    sure = np.linspace(0.9, 0.5, len(names)) if confidence is None else np.array(confidence)
    folder.write_assignments(names, np.array(clusters), sure, None)
    folder.write_metrics(
        {
            **{"n_images": len(names), "n_clusters": n_clusters, "scores": None, "epochs": 1},
            **{"seed": 3, "training_seconds": 1.0, "device": "cpu", "dcdc": "0.2.0"},
            "health": partition_health(np.eye(n_clusters)[clusters]).to_dict(),
        }
    )
    if features is not None:
        rows = np.array(range(len(features)) if sample_rows is None else sample_rows)
        features = features[rows]
        assign = np.full((len(features), n_clusters), 1 / n_clusters, np.float32)
        folder.write_sample(
            {
                **{"rows": rows, "features": features.astype(np.float16), "assign": assign},
                **{"view_rows": rows[:1], "view_assign": assign[:1]},
                "view_assign_perturbed": assign[:1],
            }
        )
    return folder


def photo(shade: int, size: tuple[int, int] = (300, 200)) -> Image.Image:
    """Its left half is dark."""
    pixels = np.full((size[1], size[0], 3), shade, np.uint8)
    pixels[:, : size[0] // 2] //= 4
    return Image.fromarray(pixels)


class Client:
    """Of one server; every header may be forged."""

    def __init__(self, server: ViewServer) -> None:
        self.server = server
        self.cookie = f"{server.cookie}={server.token}"

    def ask(self, path: str, *, method: str = "GET", body: bytes | None = None, **headers: str):
        """Keywords name headers, with _ for -; an empty one is left out."""
        sent = {"Host": self.server.hosts[0], "Cookie": self.cookie}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return SimpleNamespace(
                status=answer.status, headers=answer.headers, content=answer.read()
            )
        finally:
            connection.close()
