"""What trains when: a config's phases, one after the other."""

from dcdc.config import RunConfig
from dcdc.data import ImageSet
from dcdc.engine.plan import HEADS, INSTANCE, SELF_LABEL, Phase, Plan
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD, PROJECTION


def build_plan(config: RunConfig, image_set: ImageSet) -> Plan:
    return Plan(
        phases=tuple(phase for phase in _phases(config) if phase.epochs),
        n_images=image_set.n_images,
        n_extra=0 if image_set.extra is None else len(image_set.extra),
        cluster_head=CLUSTER_HEAD,
        seed=config.train.seed,
        evaluate_every=config.train.evaluate_every,
        checkpoint_every=config.train.checkpoint_every,
        keep_checkpoints=config.train.keep_checkpoints,
    )


def _phases(config: RunConfig) -> list[Phase]:
    instance, train, self_label = config.instance, config.train, config.self_label
    heads: tuple[str, ...] = (CLUSTER_HEAD,)
    if config.network.over_clusters:
        heads += (OVER_CLUSTERING_HEAD,)
    return [
        Phase(
            INSTANCE,
            epochs=instance.epochs,
            batch_size=instance.batch_size,
            heads=(PROJECTION,),
            learning_rate=instance.learning_rate,
            schedule=instance.schedule,
            warmup_epochs=instance.warmup_epochs,
            temperature="" if instance.predicts else "instance.temperature",
        ),
        Phase(
            HEADS,
            epochs=train.epochs,
            batch_size=train.batch_size,
            heads=heads,
            learning_rate=train.learning_rate,
            schedule=train.schedule,
            warmup_epochs=train.warmup_epochs,
            head_training=train.heads,
            over_clustering_first=int(train.over_clustering_first),
            n_neighbours=train.neighbours,
            temperature="loss.temperature",
        ),
        Phase(
            SELF_LABEL,
            epochs=self_label.epochs,
            batch_size=self_label.batch_size or train.batch_size,
            heads=(CLUSTER_HEAD,),
            learning_rate=self_label.learning_rate,
            schedule=self_label.schedule,
        ),
    ]
