from .atomic_files import atomic_write, check_output, output_file, write_text
from .canonical import Json, Seed, canonical_json, digest, file_digest, rng_for
from .cluster import ClusterConfig, ClusterError
from .command import Program
from .errors import OutputError, RecipeError, UserError, did_you_mean, one_line, plural
from .guard import run
from .install_hints import install_command, install_weights_command, shell_command
from .interruption import keeping_work
from .locations import Location, PathText, check_commit, public_location
from .meters import Meter, log_status, progress, step
from .model_config import CONFIG_FILES, MODULES_FILE, check_model_folder
from .names import (
    FolderName,
    PathName,
    RelativePath,
    SplitName,
    check_path_name,
    check_split_name,
    safe_join,
    validate_folder_name,
)
from .output import (
    Output,
    has_work,
    make_readable,
    matches_recipe,
    move_aside,
    output_directory,
    resolve_output_path,
)
from .recipe import (
    FrozenModel,
    Recipe,
    check_no_secrets,
    check_recipe,
    content_values,
    describe_difference,
    differing_keys,
    first_validation_error,
    read_recipe,
    recipe_path,
    recipe_values,
    write_recipe,
)
from .regular_files import check_file, open_file, read_small
from .secrets import environment_secrets, redact
from .software import versions
from .toml_files import parse_toml, read_toml

__all__ = [
    "CONFIG_FILES",
    "MODULES_FILE",
    "ClusterConfig",
    "ClusterError",
    "FolderName",
    "FrozenModel",
    "Json",
    "Location",
    "Meter",
    "Output",
    "OutputError",
    "PathName",
    "PathText",
    "Program",
    "Recipe",
    "RecipeError",
    "RelativePath",
    "Seed",
    "SplitName",
    "UserError",
    "atomic_write",
    "canonical_json",
    "check_commit",
    "check_file",
    "check_model_folder",
    "check_no_secrets",
    "check_output",
    "check_path_name",
    "check_recipe",
    "check_split_name",
    "content_values",
    "describe_difference",
    "did_you_mean",
    "differing_keys",
    "digest",
    "environment_secrets",
    "file_digest",
    "first_validation_error",
    "has_work",
    "install_command",
    "install_weights_command",
    "keeping_work",
    "log_status",
    "make_readable",
    "matches_recipe",
    "move_aside",
    "one_line",
    "open_file",
    "output_directory",
    "output_file",
    "parse_toml",
    "plural",
    "progress",
    "public_location",
    "read_recipe",
    "read_small",
    "read_toml",
    "recipe_path",
    "recipe_values",
    "redact",
    "resolve_output_path",
    "rng_for",
    "run",
    "safe_join",
    "shell_command",
    "step",
    "validate_folder_name",
    "versions",
    "write_recipe",
    "write_text",
]
