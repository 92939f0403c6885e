"""The artifact is a Process Run Crate, checked offline by roc-validator.

The validator asks the network for one file only, the JSON-LD context of RO-Crate; it gets the one
that the rocrate package carries.
"""

import json
import zipfile
from importlib.resources import files

import pytest
import requests
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
# Recommended, and not met on purpose: an endTime would change the bytes at every export; who ran
# it, who publishes it and where the tool lives are for its publisher to say.
LEFT_OPEN = (
    "endTime",
    "agent",
    "author",
    "publisher",
    "SHOULD be an absolute URI",
    "SHOULD have a url",
)


@pytest.fixture
def offline(monkeypatch):
    def get(self, url, **options):
        response = requests.Response()
        response.url, response.status_code = url, 504
        if url == CONTEXT:
            response.status_code = 200
            response.headers["Content-Type"] = "application/ld+json"
            response._content = files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()
        return response

    monkeypatch.setattr(HttpRequester, "get", get, raising=False)


def issues(path):
    settings = ValidationSettings(
        rocrate_uri=str(path),
        profile_identifier="process-run-crate",
        requirement_severity=Severity.RECOMMENDED,
        offline=True,
    )
    return services.validate(settings).get_issues()


def test_conforms_to_the_profile(offline, artifact):
    found = issues(artifact)
    assert [i.message for i in found if i.severity == Severity.REQUIRED] == []
    rest = [i.message for i in found if not any(text in i.message for text in LEFT_OPEN)]
    assert rest == []


def test_validator_sees_faults(offline, artifact, tmp_path):
    """The check above can fail: without its licence the crate does not conform."""
    with zipfile.ZipFile(artifact) as archive:
        crate = json.loads(archive.read("ro-crate-metadata.json"))
        members = {n: archive.read(n) for n in archive.namelist() if n != "ro-crate-metadata.json"}
    next(e for e in crate["@graph"] if e["@id"] == "./").pop("license")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("ro-crate-metadata.json", json.dumps(crate))
        for name, content in members.items():
            archive.writestr(name, content)
    assert any(i.severity == Severity.REQUIRED for i in issues(tmp_path / "a.zip"))
