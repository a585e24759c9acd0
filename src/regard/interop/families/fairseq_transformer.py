"""fairseq's Transformers (Ott et al. 2019, arXiv:1904.01038), once `interop/fairseq.py` has converted them."""

from pathlib import Path

from regard.interop.fairseq import MODEL_TYPE, check_sizes, load_dictionary
from regard.interop.families._encoder_decoder import layer_mapping
from regard.interop.family import FAMILIES, Family
from regard.interop.tensor_map import ModelMapping, TokenizerPair, layer, tensor
from regard.interop.transforms import VocabularyRows
from regard.models.settings import ModelSettings


@FAMILIES.register(MODEL_TYPE)
class FairseqTransformer(Family):
    exports_imported = False

    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        tie = self.config["tie"]
        source, target = VocabularyRows(tokenizers.source), VocabularyRows(tokenizers.target)
        tensors = [tensor("encoder.embed_tokens.weight", "encoder.embedding.weight", source)]
        if tie != "all":
            tensors.append(tensor("decoder.embed_tokens.weight", "decoder.embedding.weight", target))
        if tie == "none":
            tensors.append(tensor("decoder.output_projection.weight", "output.weight", target))
            tensors.append(tensor("output.bias", "output.bias", target))
        components = {}
        for side in ("encoder", "decoder"):
            config = self.config[side]
            check_sizes(side, config)
            components[side] = {"kind": "transformer", "position": "learned", **config}
            tensors.append(tensor(f"{side}.embed_positions.weight", f"{side}.embedding.position.table.weight"))
            if config["norm_embedding"]:
                tensors += layer(f"{side}.layernorm_embedding", f"{side}.embedding.norm")
            if config["norm_first"]:
                tensors += layer(f"{side}.layer_norm", f"{side}.norm")
            for number in range(config["layers"]):
                name = f"{side}.layers.{number}"
                tensors += layer_mapping(name, name, cross_attention=side == "decoder")
        return ModelMapping(ModelSettings.parse({**components, "tie": tie}), tensors)

    def tokenizers(self, folder: Path) -> TokenizerPair:
        return TokenizerPair(load_dictionary(folder, "source"), load_dictionary(folder, "target"))

    def languages(self, folder: Path) -> tuple[str | None, str | None]:
        return str(self.config["source"]), str(self.config["target"])
