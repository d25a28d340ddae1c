"""Words that turn a statement round, widen or weaken it, in seven languages."""

from typing import Final

from providers.text import stem


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS: Final = _set(
    """not no never neither nor none nobody nothing nowhere without cannot can't won't isn't aren't wasn't weren't
    doesn't don't didn't hasn't haven't hadn't shouldn't wouldn't couldn't mustn't n't hardly unable lack lacks lacked
    lacking fails failed refuses refused
    nicht kein keine keinen keiner keinem keines nie niemals niemand nichts ohne weder
    ne pas jamais aucun aucune sans ni rien personne
    no nunca jamás ningún ninguna ninguno sin tampoco nadie nada
    non mai nessun nessuno nessuna senza né
    não nunca nenhum nenhuma sem nem ninguém
    niet geen nooit niemand niets zonder noch"""
)
REFUSALS: Final = _set(
    """ban banned bans forbid forbidden forbids prohibit prohibited prohibits exclude excluded excludes exempt except
    avoid avoided deny denied denies reject rejected rejects refuse refused refuses unaffected
    verboten untersagt ausgeschlossen ausgenommen verweigert interdit interdite interdits interdites exclu exclus refuse
    prohibido prohibida excluido excluidos vietato escluso proibido verboden uitgesloten"""
)
"""Words that deny what they speak of."""
COMPARING: Final = _set("than als dan")
"""Words behind a comparative that seldom stand elsewhere."""
NEGATIVE_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non", "non-")

UNIVERSAL: Final = _set(
    """all every each always entire entirely whole any everyone everything completely invariably
    alle allen jeder jede jedes jeden immer sämtliche stets tous toutes tout chaque toujours todos todas cada siempre
    tutti tutte ogni sempre sempre todo toda elke ieder alle altijd"""
)
EXCLUSIVE: Final = _set(
    """only solely exclusively just merely sole nur ausschließlich lediglich seulement uniquement sólo solo solamente
    únicamente soltanto unicamente apenas somente alleen slechts uitsluitend"""
)
MOSTLY: Final = _set(
    """most mostly usually generally majority mainly largely typically normally predominantly primarily often
    meist meistens meisten überwiegend gewöhnlich plupart généralement souvent mayoría generalmente maggior parte
    maioria geralmente meestal meeste"""
)
PARTLY: Final = _set(
    """some several certain sometimes partly partially occasionally many few
    einige manche mehrere teilweise manchmal viele wenige quelques certains certaines parfois plusieurs algunos algunas
    varios alcuni alcune talvolta alguns algumas sommige enkele soms"""
)
RARELY: Final = _set("rarely seldom hardly barely scarcely few selten kaum rarement raramente zelden")

HEDGES: Final = _set(
    """may might could possibly perhaps maybe likely probably potentially suggests suggest suggested appears appear
    seems seem reportedly allegedly presumably believed thought suspect suspects suspected
    expected planned proposed plans intends intended
    estimated preliminary unclear uncertain hypothesized hypothesised speculated predicted forecast projected
    könnte könnten möglicherweise vielleicht vermutlich wahrscheinlich offenbar angeblich soll sollen geplant
    pourrait pourraient peut-être probablement semble
    podría podrían quizás probablemente parece potrebbe potrebbero forse probabilmente sembra
    poderia talvez provavelmente parece misschien mogelijk waarschijnlijk lijkt zou"""
)
OBLIGATIONS: Final = _set(
    """must shall required requires mandatory obligatory muss müssen verpflichtend doit doivent obligatoire debe deben
    obligatorio deve devono moet moeten"""
)
OPTIONS: Final = _set(
    """may optional optionally can should recommended advisable darf dürfen kann können sollte sollten optionnel
    facultatif peut peuvent devrait devraient opcional puede pueden debería deberían facoltativo può possono kan
    kunnen"""
)

RANKS: Final = _set(
    """first second third fourth fifth sixth seventh eighth ninth tenth last
    erste ersten erster erstes zweite zweiten zweiter zweites dritte dritten dritter drittes vierte vierten
    fünfte fünften     premier première deuxième second seconde troisième quatrième cinquième
    primero primera segundo segunda tercero tercera tercer cuarto cuarta quinto quinta
    primo prima secondo seconda terzo terza quarto quarta quinto quinta primeiro primeira terceiro terceira
    eerste tweede derde vierde vijfde"""
)
"""Places in an order."""

OPPOSITES: Final = [
    frozenset(pair.split("/"))
    for pair in """increase/decrease increased/decreased increases/decreases rise/fall rose/fell rises/falls raise/lower
    raised/lowered raises/lowers grow/shrink grew/shrank grows/shrinks more/less more/fewer higher/lower highest/lowest
    high/low larger/smaller largest/smallest large/small bigger/smaller faster/slower fastest/slowest fast/slow
    before/after above/below first/last maximum/minimum most/least always/never enable/disable enabled/disabled
    enables/disables true/false accept/reject accepted/rejected accepts/rejects allow/forbid allowed/forbidden
    allows/forbids allowed/banned permitted/banned allow/ban
    allows/prevents allow/prevent allowed/prevented permitted/prohibited include/exclude
    included/excluded includes/excludes open/closed opened/closed start/end started/ended starts/ends begin/end
    begins/ends began/ended add/remove added/removed adds/removes gain/lose gained/lost gains/loses win/lose won/lost
    success/failure successful/unsuccessful succeed/fail succeeded/failed succeeds/fails north/south northern/southern
    east/west eastern/western left/right early/late earlier/later earliest/latest older/younger oldest/youngest
    older/newer oldest/newest old/new import/export imports/exports imported/exported buy/sell bought/sold
    required/optional mandatory/optional internal/external internally/externally public/private positive/negative
    upper/lower inner/outer ascending/descending synchronous/asynchronous synchronously/asynchronously
    encrypted/unencrypted compressed/uncompressed locked/unlocked lock/unlock present/absent presence/absence
    causes/prevents cause/prevent caused/prevented cheap/expensive cheaper/costlier hot/cold hotter/colder
    warmer/cooler strong/weak stronger/weaker short/long shorter/longer shortest/longest light/heavy lighter/heavier
    majority/minority improve/worsen improved/worsened improves/worsens better/worse best/worst up/down
    reduce/increase reduced/increased reduces/increases favour/against favor/against
    approve/reject approved/rejected approves/rejects support/oppose supported/opposed supports/opposes with/without
    deeper/shallower wider/narrower same/different similar/different safe/unsafe stable/unstable legal/illegal
    temporary/permanent manual/automatic manually/automatically static/dynamic local/remote client/server
    read/write reads/writes reader/writer readers/writers acquire/release acquired/released expands/contracts
    male/female males/females man/woman men/women parent/child parents/children
    expand/contract expanded/contracted absorbs/emits absorb/emit push/pull ascend/descend arrives/departs
    steigt/sinkt stieg/sank steigen/sinken erhöht/gesenkt erhöhen/senken größer/kleiner größte/kleinste mehr/weniger
    höher/niedriger vor/nach erste/letzte maximal/minimal immer/nie erlaubt/verboten aktiviert/deaktiviert
    schneller/langsamer älter/jünger innen/außen öffentlich/privat
    augmente/diminue augmenté/diminué augmenter/diminuer plus/moins avant/après premier/dernier toujours/jamais
    supérieur/inférieur autorisé/interdit obligatoire/facultatif activé/désactivé
    permitido/prohibido obligatorio/opcional
    aumenta/disminuye aumentó/disminuyó más/menos antes/después primero/último siempre/nunca mayor/menor
    aumenta/diminuisce prima/dopo primo/ultimo maggiore/minore
    antes/depois maior/menor hoger/lager groter/kleiner voor/na eerste/laatste altijd/nooit""".split()
]

OPPOSITES_OF: Final[dict[str, frozenset[str]]] = {}
for _pair in OPPOSITES:
    for _word in _pair:
        OPPOSITES_OF[_word] = OPPOSITES_OF.get(_word, frozenset()) | (_pair - {_word})

DIRECTED: Final = frozenset(
    stem(word)
    for word in """than before after from to into over under beat beats defeated defeat replace replaces replaced
    supersede superseded succeed succeeded precede preceded follow followed acquire acquired bought sold buy sell cause
    causes caused lead leads led depend depends contain contains contained include includes call calls send sends sent
    receive receives invented discovered founded wrote painted designed owns owned exceed exceeds outnumber overtook
    influence influenced teach taught attack attacked invade invaded conquer conquered convert converts converted
    transform produces produced inherits extends extend implements uses used block blocks override overrides
    overridden lent borrowed exported imported married mother father parent child orbits eats ate""".split()
)
"""Stems between two names whose exchange changes what is said."""

GRAMMATICAL: Final = _set(
    """der die das den dem des ein eine einen einem einer eines er sie es ihr ihm ihn ihre sein seine wir ist sind war
    waren hat haben hatte hatten wird werden wurde wurden und oder in im an am auf zu zum zur mit von vom für bei aus
    nach über unter vor als wie dass sich auch noch so
    le la les un une des du de d l il elle ils elles on est sont était a ont avait et ou à au aux en dans par pour avec
    sur sous ce cette ces se son sa ses leur que qui y
    el los las uno una unos unas del al lo su sus es son era fue ha han y o en con por para se que
    i gli del della dei delle dello al alla nel nella è sono ha hanno e o di da in con su per che si
    os as um uma do da dos das no na ao à é são foi tem e ou em com por para que se
    de het een is zijn was heeft hebben en of in op aan met van voor bij uit naar dat die zich ook"""
)
"""Words of six languages that say nothing by themselves; English has its own list."""

PASSIVE: Final = _set("is are was were be been being wird werden wurde wurden est sont été fue fueron es è sono foi é")
BY: Final = _set("by von durch par por da dal dalla door")

SPLITS: Final = _set(
    """but however although though while whereas unless except yet because since and or
    aber jedoch obwohl während sondern und oder mais cependant tandis pero sino mientras aunque ma mentre però maar
    terwijl hoewel"""
)
"""Words at which one part of a sentence ends and another begins."""
