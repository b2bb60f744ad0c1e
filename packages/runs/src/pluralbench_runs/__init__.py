"""What every PluralBench command shares: recipe, output directory, resume, progress, errors to exit status."""

from pluralbench_runs.canonical import Json, canonical_json, digest, file_digest, stream
from pluralbench_runs.cluster import Cluster, ClusterError
from pluralbench_runs.command import Program, run
from pluralbench_runs.errors import OutputError, RecipeError, UserError, did_you_mean, one_line
from pluralbench_runs.installing import how_to_install, how_to_install_weights, shell_line
from pluralbench_runs.model_config import check_model_folder, config_fault
from pluralbench_runs.names import PathName, RelativePath, SplitName, inside, path_name, split_name
from pluralbench_runs.opening import open_file
from pluralbench_runs.output import Output, is_made_by, output_directory, readable, replaceable
from pluralbench_runs.places import Place, public_place
from pluralbench_runs.progress import Meter, announce, progress
from pluralbench_runs.recipe import (
    Recipe,
    Table,
    check_recipe,
    content_values,
    difference,
    differing_keys,
    first_fault,
    read_recipe,
    recipe_path,
    recipe_values,
    refuse_secrets,
    write_recipe,
)
from pluralbench_runs.replacing import replacing, write_text
from pluralbench_runs.secrets import redacted, secrets
from pluralbench_runs.software import versions
from pluralbench_runs.toml_files import parse_toml, read_toml

__all__ = [
    "Cluster",
    "ClusterError",
    "Json",
    "Meter",
    "Output",
    "OutputError",
    "PathName",
    "Place",
    "Program",
    "Recipe",
    "RecipeError",
    "RelativePath",
    "SplitName",
    "Table",
    "UserError",
    "announce",
    "canonical_json",
    "check_model_folder",
    "check_recipe",
    "config_fault",
    "content_values",
    "did_you_mean",
    "difference",
    "differing_keys",
    "digest",
    "file_digest",
    "first_fault",
    "how_to_install",
    "how_to_install_weights",
    "inside",
    "is_made_by",
    "one_line",
    "open_file",
    "output_directory",
    "parse_toml",
    "path_name",
    "progress",
    "public_place",
    "read_recipe",
    "read_toml",
    "readable",
    "recipe_path",
    "recipe_values",
    "redacted",
    "refuse_secrets",
    "replaceable",
    "replacing",
    "run",
    "secrets",
    "shell_line",
    "split_name",
    "stream",
    "versions",
    "write_recipe",
    "write_text",
]
